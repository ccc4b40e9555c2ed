"""Operations that move replicas, and the auxiliary operations around them."""
