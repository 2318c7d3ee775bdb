"""Tests of the chat screen."""
