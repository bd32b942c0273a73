from controlplane.runtime.desk import KEPT, Desk, Told


def drawn(told: list[Told] | None) -> list[bytes]:
    assert told is not None
    return [each.drawn(lambda what: str(what).encode()) for each in told]


async def test_a_reader_gets_all_that_was_told_after_its_place_in_order():
    desk = Desk()
    desk.tell("before")
    place = desk.place
    desk.tell("a", "b")
    desk.tell("c")
    assert drawn(await desk.after(place, 0)) == [b"a", b"b", b"c"]
    assert await desk.after(desk.place, 0.01) == []


async def test_whoever_is_too_far_behind_begins_anew_and_the_others_go_on():
    desk = Desk()
    slow, quick = desk.place, desk.place
    for number in range(KEPT + 1):
        desk.tell(number)
        told = await desk.after(quick, 0)
        assert drawn(told) == [str(number).encode()]
        quick = desk.place
    assert await desk.after(slow, 0) is None
    assert len(drawn(await desk.after(slow + 1, 0))) == KEPT


async def test_each_thing_is_drawn_once():
    desk, times = Desk(), []
    desk.tell("this")
    (told,) = await desk.after(0, 0) or []
    for _ in range(3):
        assert told.drawn(lambda what: times.append(what) or b"drawn") == b"drawn"
    assert times == ["this"]


async def test_what_stands_is_told_to_whoever_comes_until_it_is_taken_down():
    desk = Desk()
    desk.put_up("one", "question")
    assert drawn(list(desk.standing.values())) == [b"question"]
    desk.take_down("one", "gone")
    assert desk.standing == {}
    assert drawn(await desk.after(0, 0)) == [b"question", b"gone"]


async def test_beginning_anew_is_for_everybody():
    desk = Desk()
    desk.tell("old")
    places = [0, desk.place]
    desk.begin_anew({"one": "question"})
    assert [await desk.after(place, 0) for place in places] == [None, None]
    assert list(desk.standing) == ["one"]
    desk.tell("new")
    assert drawn(await desk.after(desk.place - 1, 0)) == [b"new"]
