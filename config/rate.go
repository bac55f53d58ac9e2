package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

const (
	// maxRate is far above what one process delivers.
	maxRate = 1e6
	// minRate is one message in a day; anything slower is no limit but a stop.
	minRate = 1.0 / 86400
)

// rateUnits are the times that a rate may count by, the shortest first.
func rateUnits() []struct {
	suffix  string
	seconds float64
} {
	return []struct {
		suffix  string
		seconds float64
	}{{"/s", 1}, {"/m", 60}, {"/h", 3600}}
}

// rate is a number of messages per second up to high; 0 is no bound.
func rate(field func(*Settings) *float64, high float64) value {
	return value{
		kind:    Rate,
		allowed: "0, or 1 in a day to " + formatRate(high) + ", such as 10/s, 600/m or 36000/h",
		nearest: func(text string) string {
			r, err := parseRate(text)
			switch {
			case errors.Is(err, errRange):
				return formatRate(high)
			case err != nil:
				return "10/s"
			}
			return formatRate(min(max(r, 1.0/3600), high))
		},
		set: func(s *Settings, text string) error {
			r, err := parseRate(text)
			if err == nil && r != 0 && (r < minRate || r > high) {
				err = errRange
			}
			if err == nil {
				*field(s) = r
			}
			return err
		},
		get: func(s *Settings) string { return formatRate(*field(s)) },
	}
}

// parseRate reads "10/s", "600/m", "36000/h" or a bare number per second. It
// is out of range when it is too large for any option.
func parseRate(text string) (float64, error) {
	number, seconds := text, 1.0
	for _, unit := range rateUnits() {
		if rest, found := strings.CutSuffix(text, unit.suffix); found {
			number, seconds = strings.TrimSpace(rest), unit.seconds
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) && isDecimal(number):
		return 0, errRange
	case err != nil || !isDecimal(number):
		return 0, errors.New("is no rate")
	}
	return n / seconds, nil
}

// formatRate writes r by the shortest time in which it is a whole number.
func formatRate(r float64) string {
	if r == 0 {
		return "0"
	}
	for _, unit := range rateUnits() {
		if n := math.Round(r * unit.seconds); n > 0 && n/unit.seconds == r { // as it is read again
			return strconv.FormatFloat(n, 'f', -1, 64) + unit.suffix
		}
	}
	return strconv.FormatFloat(r, 'f', -1, 64) + "/s"
}
