"""What a full cache drops."""

from gateway.foundation.least_used import LeastUsed


def test_the_least_recently_used_entry_goes_first():
    kept = LeastUsed[str](2)

    assert [*kept.add("a", "one"), *kept.add("b", "one")] == []
    kept.use("a")

    assert kept.add("c", "one") == ["b"]


def test_many_entries_of_one_organization_drive_out_its_own():
    kept = LeastUsed[str](100)
    assert kept.add("polite", "polite") == []

    dropped = [key for number in range(1000) for key in kept.add(f"hostile {number}", "hostile")]

    assert dropped == [f"hostile {number}" for number in range(901)]


def test_a_new_organization_takes_from_the_least_recently_used():
    kept = LeastUsed[str](3)
    for number in range(3):
        assert kept.add(f"hostile {number}", "hostile") == []

    assert kept.add("polite", "polite") == ["hostile 0"]
    assert kept.add("hostile 3", "hostile") == ["hostile 1"]


def test_a_large_entry_drives_out_as_many_as_have_its_size():
    kept = LeastUsed[str](10)
    assert [*kept.add("polite", "polite", 2), *kept.add("a", "hostile", 4), *kept.add("b", "hostile", 4)] == []

    assert kept.add("c", "hostile", 5) == ["a", "b"]


def test_a_dropped_entry_counts_no_longer():
    kept = LeastUsed[str](1)
    assert kept.add("a", "one") == []

    kept.discard("a")
    kept.discard("a")

    assert kept.add("b", "one") == []
    kept.clear()
    assert kept.add("c", "one") == []
