"""What the compiler makes: prompts and resources, immutable and ready to render; it knows no protocol."""
