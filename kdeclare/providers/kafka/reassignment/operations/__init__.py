"""Operations that move replicas, and those that accompany them."""
