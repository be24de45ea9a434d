"""`python -m envs.rewards`: the table of all rewards, as docs/rewards.md has it."""

from envs.rewards.catalogue import table

if __name__ == "__main__":
    print(table())
