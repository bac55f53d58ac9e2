package console

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"testing"

	"tendril/api"
	"tendril/internal/observe/series"
)

func TestSeriesAreThoseOfTheRange(t *testing.T) {
	t.Parallel()
	nothing := float32(math.NaN())
	c := dial(t, &Options{Views: Views{Series: func(name string) (series.Curves, bool) {
		curves := series.Curves{At: []int64{60, 120}, Queues: map[string]series.Traffic{"jobs": {In: series.Values{1, 2}}},
			Marks: []series.Mark{{At: 90, Kind: "deploy", Text: "v2"}}}
		curves.Series.In = series.Values{nothing, 2.5}
		return curves, name == "" || name == "3h"
	}}})
	for _, name := range []string{"", "3h"} {
		got, err := c.Series(t.Context(), name)
		if err != nil || !slices.Equal(got.At, []int64{60, 120}) || len(got.Series.In) != 2 || got.Series.In[1] != 2.5 ||
			!math.IsNaN(float64(got.Series.In[0])) || got.Queues["jobs"].In[1] != 2 || len(got.Marks) != 1 {
			t.Errorf("range %q: %+v, %v", name, got, err)
		}
	}
	var refused *api.Error
	if _, err := c.Series(t.Context(), "a year"); !errors.As(err, &refused) || refused.Status != http.StatusBadRequest ||
		refused.Hint != "use one of 15m, 3h, 24h" {
		t.Errorf("an unknown range: %v", err)
	}
	if code, _ := exchange(t, New(&Options{}), get("/api/v1/series")); code != http.StatusConflict {
		t.Errorf("without curves the status is %d", code)
	}
}
