"""Operations, which are the steps that apply executes: their arguments, types, effects, inverses and retries.
"""
