package web

import "testing"

func TestDurationsAreShownInTheUnitOfTheirRange(t *testing.T) {
	t.Parallel()
	for ms, want := range map[int64]string{
		0: "0 ms", 999: "999 ms", 1000: "1.00 s", 1250: "1.25 s", 9999: "9.99 s", 59_994: "59.99 s", 59_999: "59.99 s",
		60_000: "1 min", 3_599_999: "59 min", 3_600_000: "1 h 0 min",
	} {
		if got := milliseconds(ms); got != want {
			t.Errorf("%d ms is shown as %q, want %q", ms, got, want)
		}
	}
}
