"""Advice on how to get a language model, for the first screen, /model and the offline assistant itself."""

WITHOUT_MODEL = "the offline assistant answers, by words and rules"
WAYS_TO_A_MODEL = (
    "start Ollama, LM Studio or llama.cpp, then /model chooses from it",
    "or restart with a key: export ANTHROPIC_API_KEY=… (OPENAI_, …)",
)
