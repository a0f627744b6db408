"""Operations as agents look for them: found by plain words, in one line, and as tools. Pure: a catalog in, data out."""
