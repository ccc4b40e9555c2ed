"""Operations on topics and configs."""
