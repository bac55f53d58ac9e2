package limit

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOptionsAreBroughtIntoRange(t *testing.T) {
	t.Parallel()
	breaker := Breaker{FailureRatio: 0.5, Window: 30 * time.Second, Delay: 5 * time.Second}
	for _, tt := range []struct {
		name     string
		in, want *Options
	}{
		{"nil", nil, &Options{Batch: 1, Concurrency: 50}},
		{"zero", &Options{}, &Options{Batch: 1, Concurrency: 50}},
		{"zero breaker", &Options{Breaker: &Breaker{}}, &Options{Batch: 1, Concurrency: 50, Breaker: &breaker}},
		{"negative",
			&Options{Rate: -1, Concurrency: -1, Batch: -1, Adaptive: true,
				Breaker: &Breaker{FailureRatio: -1, Window: -1, Delay: -1}},
			&Options{Batch: 1, Concurrency: 1, Adaptive: true,
				Breaker: &Breaker{FailureRatio: 0.5, Window: time.Second, Delay: 5 * time.Second}}},
		{"not a number", &Options{Rate: math.NaN(), Breaker: &Breaker{FailureRatio: math.NaN()}},
			&Options{Batch: 1, Concurrency: 50, Breaker: &breaker}},
		{"infinite", &Options{Rate: math.Inf(1)}, &Options{Batch: 1, Concurrency: 50}},
		{"too large", &Options{Rate: 1e9, Breaker: &Breaker{FailureRatio: 7, Delay: time.Hour}},
			&Options{Rate: 1e9, Batch: 1, Concurrency: 50,
				Breaker: &Breaker{FailureRatio: 1, Window: 30 * time.Second, Delay: time.Hour}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := tt.in.withDefaults()
			if got.Events == nil {
				t.Fatal("no events")
			}
			got.Events = nil
			if diff := cmp.Diff(*tt.want, got); diff != "" {
				t.Errorf("withDefaults (-want +got):\n%s", diff)
			}
			New(tt.in)
		})
	}
}

func TestAdaptiveLimitStartsWithinItsRange(t *testing.T) {
	t.Parallel()
	for concurrency, want := range map[int]int{0: 10, 1: 1, 4: 4, 10: 10, 100: 10} {
		l := New(&Options{Concurrency: concurrency, Adaptive: true})
		if got := l.Status().Limit; got != want {
			t.Errorf("concurrency %d: the adaptive limit starts at %d, want %d", concurrency, got, want)
		}
	}
}
