"""Operations on one live object beside create, update and delete."""
