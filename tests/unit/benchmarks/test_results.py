from benchmarks.results import Result, as_json, compare, milliseconds_over, ratio_of


def test_a_ratio_is_that_of_the_minima_with_the_spread_of_the_rounds() -> None:
    ratio = ratio_of([4.0, 3.0], [2.0, 1.0], aim=2.5)
    assert (ratio.value, ratio.low, ratio.high, ratio.missed) == (3.0, 2.0, 3.0, True)
    assert not ratio_of([4.0], [2.0], aim=2, at_least=True).missed


def test_start_up_is_a_difference_in_milliseconds() -> None:
    assert str(milliseconds_over([0.05, 0.04], [0.01, 0.02], aim=35)) == (
        "30 ms  (20 to 40; aim: at most 35)"
    )


def test_only_calls_and_modules_make_runs_differ() -> None:
    before = {
        "plan": Result(
            "plan",
            ratios={"CPU": ratio_of([2.0], [1.0])},
            calls={"plan": 6},
            modules={"plan": ["httpx", "reconciler.commands"]},
        )
    }
    saved = as_json(before)["results"]
    slower = Result("plan", {"CPU": ratio_of([3.0], [1.0])}, {"plan": 6}, before["plan"].modules)
    assert compare(saved, {"plan": slower}) == (["plan: CPU: 2.00 -> 3.00 (+50%)"], False)
    assert compare(saved, {"plan": slower}, exact_only=True) == ([], False)
    other = Result("plan", {}, {"plan": 7}, {"plan": ["reconciler.commands", "yaml"]})
    assert compare(saved, {"plan": other}) == (
        ["plan: plan: 6 -> 7 calls", "plan: plan imports +yaml -httpx"],
        True,
    )


def test_a_scenario_of_one_run_only_is_not_compared() -> None:
    assert compare({}, {"plan": Result("plan", calls={"plan": 6})}) == ([], False)
