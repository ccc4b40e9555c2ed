"""Operations: what apply executes, what each touches, and how it is undone, retried and cleaned up."""
