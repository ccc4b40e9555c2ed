"""Operations that move replicas, wait for moves, set and clear throttles, and elect preferred leaders."""
