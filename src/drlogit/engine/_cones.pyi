from ..rows.arrays import IndexArray

class Cone:
    degree: float

def no_norm(last: int) -> Cone: ...
def cone_of(norm: str, where: IndexArray, last: int) -> Cone: ...
