"""Operations, which are the steps that apply executes: arguments, types, effects, inverses and retries."""
