"""Operations: the steps that apply executes, what each one touches, and how it is undone and retried."""
