package config

import (
	"cmp"
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	kindDuration = "duration" // "30s", "5m", "1h30m", "4d", or seconds without a unit
	kindInteger  = "integer"
	kindSize     = "size" // bytes, without a unit or with B, KiB, MiB or GiB
	kindSwitch   = "switch"
	kindChoice   = "choice"
	kindRate     = "rate" // "10/s", "600/m", "36000/h", or per second without a unit
	kindNumber   = "number"
	kindList     = "list"
	kindText     = "text" // anything else, as the option's range describes
)

type value struct {
	kind                  string
	allowed               string
	low, high             string
	choices               []string
	acceptsOtherSpellings bool
	// nearest returns an allowed value to suggest, or "" for the default; may be nil.
	nearest func(text string) string
	// sample is suggested instead of the option's Example; may be nil.
	sample      func() string
	alternative string
	set         func(text string) error
	get         func() string
	// unset empties the field; nil if the option cannot be empty.
	unset func()
}

func (v *value) assign(text string) error {
	if text == "" && v.unset != nil {
		v.unset()
		return nil
	}
	return v.set(text)
}

var errRange = errors.New("is out of range")

func stored[T any](field *T, kind, allowed string, parse func(string) (T, error), format func(T) string) value {
	return value{
		kind:    kind,
		allowed: allowed,
		set: func(text string) error {
			v, err := parse(text)
			if err == nil {
				*field = v
			}
			return err
		},
		get:   func() string { return format(*field) },
		unset: func() { *field = *new(T) },
	}
}

// bounded suggests the nearest allowed value. parse may return errRange together with a value.
func bounded[T cmp.Ordered](field *T, kind string, low, high T, parse func(string) (T, error), format func(T) string) value {
	v := stored(field, kind, format(low)+" to "+format(high), inRange(low, high, parse), format)
	v.low, v.high = format(low), format(high)
	v.nearest = nearestIn(low, high, parse, format)
	return v
}

func inRange[T cmp.Ordered](low, high T, parse func(string) (T, error)) func(string) (T, error) {
	return func(text string) (T, error) {
		n, err := parse(text)
		if err == nil && (n < low || n > high) {
			err = errRange
		}
		return n, err
	}
}

func nearestIn[T cmp.Ordered](low, high T, parse func(string) (T, error), format func(T) string) func(string) string {
	return func(text string) string {
		n, err := parse(strings.TrimPrefix(text, "+"))
		if err != nil && !errors.Is(err, errRange) {
			return ""
		}
		return format(min(max(n, low), high))
	}
}

func duration(field *time.Duration, low, high time.Duration) value {
	return bounded(field, kindDuration, low, high, ParseDuration, formatDuration)
}

func integer(field *int, low, high int) value {
	return bounded(field, kindInteger, low, high, parseInteger, strconv.Itoa)
}

const defaultAppPort = "5000"

func appPort(field *int) value {
	v := integer(field, 1, 65535)
	v.nearest = func(string) string { return defaultAppPort }
	v.alternative = ", or remove it to use the first free port from " + defaultAppPort
	return v
}

func size(field *int64, low, high int64) value {
	return bounded(field, kindSize, low, high, parseSize, formatSize)
}

func number(field *float64, low, high float64) value {
	return bounded(field, kindNumber, low, high, parseNumber, formatNumber)
}

func onOff(field *bool) value {
	return stored(field, kindSwitch, "true or false", parseSwitch, strconv.FormatBool)
}

const (
	maxRate = 1e6
	minRate = 1.0 / 86400 // one message per day
)

// rate stores messages per second; 0 means no limit.
func rate(field *float64) value {
	v := bounded(field, kindRate, 0, maxRate, func(text string) (float64, error) {
		r, err := parseRate(text)
		if r > 0 && r < minRate {
			err = errRange
		}
		return r, err
	}, formatRate)
	v.allowed = "0, or 1 per day to " + formatRate(maxRate) + ", such as 10/s, 600/m or 36000/h"
	nearest := nearestIn(1.0/3600, maxRate, parseRate, formatRate)
	v.nearest = func(text string) string { return cmp.Or(nearest(text), "10/s") }
	return v
}

const unset = "unset"

func optionalDuration(field **time.Duration, low, high time.Duration) value {
	lowest, highest := formatDuration(low), formatDuration(high)
	v := stored(field, kindDuration, lowest+" to "+highest+", or "+unset, func(text string) (*time.Duration, error) {
		if text == unset {
			return nil, nil
		}
		d, err := inRange(low, high, ParseDuration)(text)
		return &d, err
	}, func(d *time.Duration) string {
		if d == nil {
			return unset
		}
		return formatDuration(*d)
	})
	v.low, v.high = lowest, highest
	v.nearest = nearestIn(low, high, ParseDuration, formatDuration)
	return v
}

func choice(field *string, words ...string) value {
	return parsedChoice(field, orList(words), words, func(text string) (string, bool) { return text, slices.Contains(words, text) })
}

func parsedChoice(field *string, allowed string, offered []string, parse func(string) (string, bool)) value {
	v := stored(field, kindChoice, allowed, func(text string) (string, error) {
		word, known := parse(text)
		if !known {
			return "", errors.New("is unknown")
		}
		return word, nil
	}, asWritten)
	v.choices = offered
	v.nearest = func(text string) string { return nearestOne(text, offered) }
	return v
}

func autoSwitch(field *string) value {
	words := []string{auto, On, Off}
	v := parsedChoice(field, orList(words), words, func(text string) (string, bool) {
		on, err := parseSwitch(text)
		switch {
		case text == auto:
			return auto, true
		case on:
			return On, true
		}
		return Off, err == nil
	})
	v.acceptsOtherSpellings = true
	return v
}

func anyCase(field *string, allowed string, offered []string, silent ...string) value {
	known := slices.Concat(offered, silent)
	v := parsedChoice(field, allowed, offered, func(text string) (string, bool) {
		i := slices.IndexFunc(known, func(w string) bool { return strings.EqualFold(w, text) })
		if i < 0 {
			return "", false
		}
		return known[i], true
	})
	v.acceptsOtherSpellings = true
	return v
}

func checked(field *string, allowed string, rule func(string) (string, error)) value {
	return stored(field, kindText, allowed, rule, asWritten)
}

func asWritten(text string) string { return text }

// list stores comma-separated values; [Off] means an empty list.
func list(field *[]string, allowed string, rule func(string) (string, error)) value {
	return stored(field, kindList, allowed, func(text string) (all []string, err error) {
		if text == Off {
			return nil, nil
		}

		for item := range strings.SplitSeq(text, ",") {
			usual, err := rule(strings.TrimSpace(item))
			if err != nil {
				return nil, err
			}
			if !slices.Contains(all, usual) {
				all = append(all, usual)
			}
		}

		return all, nil
	}, func(all []string) string { return strings.Join(all, ",") })
}

// ParseDuration parses "30s", "5m", "1h30m", "4d" or a number of seconds.
func ParseDuration(text string) (time.Duration, error) {
	scale := time.Second
	number, inDays := strings.CutSuffix(text, "d")
	if inDays {
		scale = 24 * time.Hour
	}

	if n, err := strconv.ParseFloat(number, 64); err == nil && isDecimal(number) {
		if math.Abs(n)*float64(scale) > math.MaxInt64/2 {
			return math.MaxInt64, errRange
		}
		return time.Duration(math.Round(n * float64(scale))), nil
	}

	d, err := time.ParseDuration(text)
	if err != nil || hasPlus(text) {
		return 0, errors.New("is not a duration")
	}

	return d, nil
}

// formatDuration prefers whole seconds, like Elastic Beanstalk.
func formatDuration(d time.Duration) string {
	if d%time.Second == 0 {
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return d.String()
}

// HumanDuration formats d in the largest unit that divides it: 14d, 90m, 30s.
func HumanDuration(d time.Duration) string {
	if d%time.Second != 0 {
		return formatDuration(d)
	}
	return inUnits(int64(d/time.Second), longUnits)
}

var wholeSeconds = regexp.MustCompile(`\b\d+s\b`)

func humanDurations(text string) string {
	return wholeSeconds.ReplaceAllStringFunc(text, func(seconds string) string {
		d, err := ParseDuration(seconds)
		if err != nil {
			return seconds
		}
		return HumanDuration(d)
	})
}

func parseInteger(text string) (int, error) {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange) || hasPlus(text):
		return 0, errors.New("is not a whole number")
	case err != nil:
		return n, errRange
	}
	return n, nil
}

// hasPlus finds the sign that package strconv accepts, but ports, weights and statuses do not.
func hasPlus(text string) bool { return strings.HasPrefix(text, "+") }

func parseNumber(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	switch {
	// ParseFloat also accepts hexadecimal numbers, exponents, underscores and infinities.
	case !isDecimal(text) || err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, errors.New("is not a number")
	case err != nil:
		return n, errRange
	}
	return n, nil
}

func isDecimal(s string) bool { return s != "" && strings.Trim(s, "-.0123456789") == "" }

func formatNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

type unit struct {
	suffix string
	scale  float64
}

// Rates are formatted with the shortest period that gives a whole number, sizes and durations in their largest unit
// that does.
var (
	rateUnits = []unit{{"/s", 1}, {"/m", 60}, {"/h", 3600}}
	sizeUnits = []unit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}
	longUnits = []unit{{"d", 24 * 3600}, {"h", 3600}, {"m", 60}, {"s", 1}}
)

func cutUnit(text string, units []unit) (number string, scale float64) {
	for _, u := range units {
		if number, found := strings.CutSuffix(text, u.suffix); found {
			return strings.TrimSpace(number), u.scale
		}
	}
	return text, 1
}

func inUnits(n int64, units []unit) string {
	for _, u := range units {
		if n != 0 && n%int64(u.scale) == 0 {
			return strconv.FormatInt(n/int64(u.scale), 10) + u.suffix
		}
	}
	return "0" + units[len(units)-1].suffix
}

func parseRate(text string) (float64, error) {
	number, seconds := cutUnit(text, rateUnits)
	n, err := parseNumber(number)
	if err != nil && !errors.Is(err, errRange) {
		err = errors.New("is not a rate")
	}
	return n / seconds, err
}

func formatRate(r float64) string {
	if r == 0 {
		return "0"
	}
	for _, u := range rateUnits {
		if n := math.Round(r * u.scale); n > 0 && n/u.scale == r { // the text would parse to the same rate
			return formatNumber(n) + u.suffix
		}
	}
	return formatNumber(r) + "/s"
}

func parseSize(text string) (int64, error) {
	number, scale := cutUnit(text, sizeUnits)
	n, err := strconv.ParseInt(number, 10, 64)
	switch most := math.MaxInt64 / int64(scale); {
	case err != nil && !errors.Is(err, strconv.ErrRange) || hasPlus(text):
		return 0, errors.New("is not a size")
	case err != nil, n > most, n < -most:
		return math.MaxInt64, errRange
	}
	return n * int64(scale), nil
}

func formatSize(n int64) string { return inUnits(n, sizeUnits) }

func parseSwitch(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return false, errors.New("is neither true nor false")
}
