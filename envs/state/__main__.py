"""`python -m envs.state`: the table of what a GameState has, as docs/game_state.md has it."""

from envs.state.fields import table

if __name__ == "__main__":
    print(table())
