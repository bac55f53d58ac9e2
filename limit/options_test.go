package limit

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOptionsAreBroughtIntoRange(t *testing.T) {
	t.Parallel()
	breaker := Breaker{Share: 0.5, MinRequests: 10, Window: 30 * time.Second, Delay: 5 * time.Second, MaxDelay: time.Minute, Trials: 1}
	for _, tt := range []struct {
		name     string
		in, want *Options
	}{
		{"none", nil, &Options{Batch: 1, Concurrency: 50}},
		{"zero", &Options{}, &Options{Batch: 1, Concurrency: 50}},
		{"zero parts", &Options{Adaptive: &Adaptive{}, Breaker: &Breaker{}},
			&Options{Batch: 1, Concurrency: 50, Adaptive: &Adaptive{Min: 1, Max: 50, Start: 10}, Breaker: &breaker}},
		{"negative", &Options{Rate: -1, Concurrency: -1, Adaptive: &Adaptive{Min: -1, Max: -1, Start: -1},
			Breaker: &Breaker{Share: -1, MinRequests: -1, Window: -1, Delay: -1, MaxDelay: -1, Trials: -1}},
			&Options{Batch: 1, Concurrency: 1, Adaptive: &Adaptive{Min: 1, Max: 1, Start: 1},
				Breaker: &Breaker{Share: 0.5, MinRequests: 1, Window: time.Second, Delay: 5 * time.Second, MaxDelay: 5 * time.Second, Trials: 1}}},
		{"no numbers", &Options{Rate: math.NaN(), Breaker: &Breaker{Share: math.NaN()}}, &Options{Batch: 1, Concurrency: 50, Breaker: &breaker}},
		{"infinite", &Options{Rate: math.Inf(1)}, &Options{Batch: 1, Concurrency: 50}},
		{"small concurrency", &Options{Concurrency: 4, Adaptive: &Adaptive{}}, &Options{Batch: 1, Concurrency: 4, Adaptive: &Adaptive{Min: 1, Max: 4, Start: 4}}},
		{"max below min", &Options{Adaptive: &Adaptive{Min: 20, Max: 10}}, &Options{Batch: 1, Concurrency: 50, Adaptive: &Adaptive{Min: 20, Max: 20, Start: 20}}},
		{"too much", &Options{Rate: 1e9, Adaptive: &Adaptive{Max: 8, Start: 9}, Breaker: &Breaker{Share: 7, Delay: time.Hour}},
			&Options{Rate: 1e9, Batch: 1, Concurrency: 50, Adaptive: &Adaptive{Min: 1, Max: 8, Start: 8},
				Breaker: &Breaker{Share: 1, MinRequests: 10, Window: 30 * time.Second, Delay: time.Hour, MaxDelay: time.Hour, Trials: 1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := tt.in.withDefaults()
			if got.Events == nil {
				t.Fatal("no events")
			}
			got.Events = nil
			if diff := cmp.Diff(*tt.want, got); diff != "" {
				t.Errorf("settled (-want +got):\n%s", diff)
			}
			New(tt.in) // the libraries panic at what they do not like
		})
	}
}
