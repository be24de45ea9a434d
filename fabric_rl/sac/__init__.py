"""SAC: learning from replayed steps (docs/sac.md)."""
