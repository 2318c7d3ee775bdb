"""Advice on how to get a language model, for the first screen, /model and the offline assistant itself."""

WITHOUT_MODEL = "the offline assistant answers by fixed rules"
WAYS_TO_A_MODEL = (
    "start Ollama, LM Studio or llama.cpp and choose with /model",
    "or restart with a key: export ANTHROPIC_API_KEY=… (OPENAI_, …)",
)
