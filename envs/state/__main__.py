"""`python -m envs.state`: print the table of GameState's fields for docs/game_state.md."""

from envs.state.fields import fields_table

if __name__ == "__main__":
    print(fields_table())
