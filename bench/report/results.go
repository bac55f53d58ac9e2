package main

import (
	"cmp"
	"errors"
	"io"
	"path"
	"slices"
	"strconv"

	"golang.org/x/perf/benchfmt"
)

// sample contains the results of one figure, sorted.
type sample []float64

func (s sample) median() float64 {
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

func (s sample) lowest() float64  { return s[0] }
func (s sample) highest() float64 { return s[len(s)-1] }

// figure identifies a measurement, such as "broker.Send/callers=1/size=200" in "msg/s".
type figure struct{ benchmark, unit string }

type run struct {
	step  string
	round int
}

type results struct {
	samples map[figure]sample
	// runs maps completed runs to the processor use of other programs in percent, or -1 if unknown.
	runs map[run]float64
	// facts are the commit, date, machine, go and peers of the first result.
	facts map[string]string
}

var factKeys = []string{"commit", "date", "machine", "go", "peers"}

func read(r io.Reader, name string) (*results, error) {
	all := &results{samples: map[figure]sample{}, runs: map[run]float64{}, facts: map[string]string{}}
	reader := benchfmt.NewReader(r, name)
	var problems []error
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			problems = append(problems, record)
		case *benchfmt.Result:
			all.add(record)
		}
	}

	for _, s := range all.samples {
		slices.Sort(s)
	}
	return all, errors.Join(append(problems, reader.Err())...)
}

func (all *results) add(r *benchfmt.Result) {
	base, parts := r.Name.Parts()
	name := path.Base(r.GetConfig("pkg")) + "." + string(base)
	for _, part := range parts {
		if part[0] == '/' { // otherwise, the number of processors
			name += string(part)
		}
	}

	if depth := r.GetConfig("depth"); depth != "" && depth != "0" {
		name += "@" + depth
	}

	for _, v := range r.Values {
		f := figure{name, cmp.Or(v.OrigUnit, v.Unit)}
		value := v.Value
		if v.OrigUnit != "" {
			value = v.OrigValue
		}
		all.samples[f] = append(all.samples[f], value)
	}

	round, _ := strconv.Atoi(r.GetConfig("round"))
	others, err := strconv.ParseFloat(r.GetConfig("others"), 64)
	if err != nil {
		others = -1
	}
	all.runs[run{r.GetConfig("step"), round}] = others

	for _, key := range factKeys {
		if all.facts[key] == "" {
			all.facts[key] = r.GetConfig(key)
		}
	}
}

func (all *results) rounds() (n int) {
	for r := range all.runs {
		n = max(n, r.round)
	}
	return n
}

func (all *results) others() (s sample) {
	for _, share := range all.runs {
		if share >= 0 {
			s = append(s, share)
		}
	}
	slices.Sort(s)
	return s
}
