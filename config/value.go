package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind says what an option's value is written as.
type Kind string

// The kinds of values.
const (
	// Duration is "30s", "5m", "1h30m", "4d", or a bare number of seconds.
	Duration Kind = "duration"
	// Integer is a whole number in decimal digits.
	Integer Kind = "integer"
	// Size is a number of bytes, bare or with B, KiB, MiB or GiB.
	Size Kind = "size"
	// Switch is true or false (also yes, no, on, off, 1, 0).
	Switch Kind = "switch"
	// Choice is one of a few words.
	Choice Kind = "choice"
	// Rate is a number of messages: "10/s", "600/m", "36000/h", or bare for each
	// second.
	Rate Kind = "rate"
	// Number is a decimal number.
	Number Kind = "number"
	// List is values with commas between.
	List Kind = "list"
	// Text is anything else; the option's range says what is allowed.
	Text Kind = "text"
)

// value connects an option to its field of Settings.
type value struct {
	kind Kind
	// allowed says in words what the option takes.
	allowed string
	// choices are the words of a Choice.
	choices []string
	// nearest is the allowed value to suggest in place of a refused one; ""
	// lets the option's default stand in.
	nearest func(text string) string
	// set parses text, checks it and stores it. Its error says what is wrong
	// with the text and not what would be right.
	set func(s *Settings, text string) error
	// get returns the stored value as it would be written.
	get func(s *Settings) string
}

var errRange = errors.New("is out of range")

// duration is an option of low to high.
func duration(field func(*Settings) *time.Duration, low, high time.Duration) value {
	return value{
		kind:    Duration,
		allowed: formatDuration(low) + " to " + formatDuration(high),
		nearest: func(text string) string {
			d, err := parseDuration(text)
			switch {
			case errors.Is(err, errRange):
				return formatDuration(high)
			case err != nil:
				return ""
			}
			return formatDuration(min(max(d, low), high))
		},
		set: func(s *Settings, text string) error {
			d, err := parseDuration(text)
			if err == nil && (d < low || d > high) {
				err = errRange
			}
			if err == nil {
				*field(s) = d
			}
			return err
		},
		get: func(s *Settings) string { return formatDuration(*field(s)) },
	}
}

// unset is the word for an option that has no value.
const unset = "unset"

// optionalDuration is a duration that may also be absent.
func optionalDuration(field func(*Settings) **time.Duration, low, high time.Duration) value {
	var d time.Duration
	v := duration(func(*Settings) *time.Duration { return &d }, low, high)
	v.allowed += ", or " + unset
	v.set = func(s *Settings, text string) error {
		if text == unset {
			*field(s) = nil
			return nil
		}
		var parsed time.Duration
		err := duration(func(*Settings) *time.Duration { return &parsed }, low, high).set(s, text)
		if err == nil {
			*field(s) = &parsed
		}
		return err
	}
	v.get = func(s *Settings) string {
		if p := *field(s); p != nil {
			return formatDuration(*p)
		}
		return unset
	}
	return v
}

// integer is a whole number of low to high.
func integer(field func(*Settings) *int, low, high int) value {
	return value{
		kind:    Integer,
		allowed: fmt.Sprintf("%d to %d", low, high),
		nearest: func(text string) string {
			n, err := strconv.Atoi(text)
			if err != nil && !errors.Is(err, strconv.ErrRange) {
				return ""
			}
			return strconv.Itoa(min(max(n, low), high))
		},
		set: func(s *Settings, text string) error {
			n, err := strconv.Atoi(text)
			switch {
			case errors.Is(err, strconv.ErrRange) || err == nil && (n < low || n > high):
				return errRange
			case err != nil:
				return errors.New("is no whole number")
			}
			*field(s) = n
			return nil
		},
		get: func(s *Settings) string { return strconv.Itoa(*field(s)) },
	}
}

// size is a number of bytes of low to high.
func size(field func(*Settings) *int64, low, high int64) value {
	return value{
		kind:    Size,
		allowed: formatSize(low) + " to " + formatSize(high),
		nearest: func(text string) string {
			n, err := parseSize(text)
			switch {
			case errors.Is(err, errRange):
				return formatSize(high)
			case err != nil:
				return ""
			}
			return formatSize(min(max(n, low), high))
		},
		set: func(s *Settings, text string) error {
			n, err := parseSize(text)
			if err == nil && (n < low || n > high) {
				err = errRange
			}
			if err == nil {
				*field(s) = n
			}
			return err
		},
		get: func(s *Settings) string { return formatSize(*field(s)) },
	}
}

// onOff is a switch.
func onOff(field func(*Settings) *bool) value {
	return value{
		kind:    Switch,
		allowed: "true or false",
		set: func(s *Settings, text string) error {
			on, err := parseSwitch(text)
			if err == nil {
				*field(s) = on
			}
			return err
		},
		get: func(s *Settings) string { return strconv.FormatBool(*field(s)) },
	}
}

// choice is one of the given words.
func choice(field func(*Settings) *string, words ...string) value {
	return value{
		kind:    Choice,
		allowed: strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1],
		choices: words,
		nearest: func(text string) string { return nearestOne(text, words) },
		set: func(s *Settings, text string) error {
			for _, w := range words {
				if text == w {
					*field(s) = w
					return nil
				}
			}
			return errors.New("is unknown")
		},
		get: func(s *Settings) string { return *field(s) },
	}
}

// autoSwitch is a switch that may also be left to other settings.
func autoSwitch(field func(*Settings) *string) value {
	v := choice(field, Auto, On, Off)
	v.set = func(s *Settings, text string) error {
		on, err := parseSwitch(text)
		switch {
		case text == Auto:
			*field(s) = Auto
		case err != nil:
			return errors.New("is unknown")
		case on:
			*field(s) = On
		default:
			*field(s) = Off
		}
		return nil
	}
	return v
}

// list is values that a rule accepts, with commas between; [Off] is an empty list.
func list(field func(*Settings) *[]string, allowed string, rule func(string) (string, error)) value {
	return value{
		kind:    List,
		allowed: allowed,
		set: func(s *Settings, text string) error {
			if text == Off {
				*field(s) = nil
				return nil
			}
			var all []string
			for item := range strings.SplitSeq(text, ",") {
				usual, err := rule(strings.TrimSpace(item))
				if err != nil {
					return err
				}
				if !slices.Contains(all, usual) {
					all = append(all, usual)
				}
			}
			*field(s) = all
			return nil
		},
		get: func(s *Settings) string { return strings.Join(*field(s), ",") },
	}
}

// words is one of the given words in any case, or none: the field stays "".
// The silent ones are taken and not offered.
func words(field func(*Settings) *string, allowed string, offered []string, silent ...string) value {
	known := slices.Concat(offered, silent)
	v := choice(field, offered...)
	v.allowed = allowed
	v.set = func(s *Settings, text string) error {
		i := slices.IndexFunc(known, func(w string) bool { return strings.EqualFold(w, text) })
		if i < 0 {
			return errors.New("is unknown")
		}
		*field(s) = known[i]
		return nil
	}
	return v
}

// number is a decimal number of low to high.
func number(field func(*Settings) *float64, low, high float64) value {
	format := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	parse := func(text string) (float64, error) {
		n, err := strconv.ParseFloat(text, 64)
		switch {
		case !isDecimal(text) || err != nil && !errors.Is(err, strconv.ErrRange):
			return 0, errors.New("is no number")
		case err != nil || n < low || n > high:
			return n, errRange
		}
		return n, nil
	}
	return value{
		kind:    Number,
		allowed: format(low) + " to " + format(high),
		nearest: func(text string) string {
			if n, err := parse(text); errors.Is(err, errRange) {
				return format(min(max(n, low), high))
			}
			return ""
		},
		set: func(s *Settings, text string) error {
			n, err := parse(text)
			if err == nil {
				*field(s) = n
			}
			return err
		},
		get: func(s *Settings) string { return format(*field(s)) },
	}
}

// checked is a text that a rule accepts, and brings into its usual form.
func checked(field func(*Settings) *string, allowed string, rule func(string) (string, error)) value {
	return value{
		kind:    Text,
		allowed: allowed,
		set: func(s *Settings, text string) error {
			usual, err := rule(text)
			if err == nil {
				*field(s) = usual
			}
			return err
		},
		get: func(s *Settings) string { return *field(s) },
	}
}

// parseDuration reads "30s", "5m", "1h30m", "4d" or bare seconds. It is out of
// range when it is too long for any option.
func parseDuration(text string) (time.Duration, error) {
	scale, number := time.Second, text
	if days, found := strings.CutSuffix(text, "d"); found {
		scale, number = 24*time.Hour, days
	}
	if n, err := strconv.ParseFloat(number, 64); err == nil && isDecimal(number) {
		if math.Abs(n)*float64(scale) > math.MaxInt64/2 {
			return 0, errRange
		}
		return time.Duration(math.Round(n * float64(scale))), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errors.New("is no duration")
	}
	return d, nil
}

// isDecimal keeps out what ParseFloat takes beside plain numbers: hexadecimal,
// exponents, underscores, infinities.
func isDecimal(s string) bool {
	return s != "" && strings.Trim(s, "-.0123456789") == ""
}

// formatDuration writes whole seconds as Elastic Beanstalk does, so that its
// figures can be recognised, and shorter ones in milliseconds or below.
func formatDuration(d time.Duration) string {
	if d%time.Second == 0 {
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return d.String()
}

// parseSize reads a number of bytes. It is out of range when it is too large
// for any option.
func parseSize(text string) (int64, error) {
	number, shift := text, 0
	for _, unit := range []struct {
		suffix string
		shift  int
	}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"B", 0}} {
		if rest, found := strings.CutSuffix(text, unit.suffix); found {
			number, shift = strings.TrimSpace(rest), unit.shift
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) || err == nil && (n > math.MaxInt64>>shift || n < -(math.MaxInt64>>shift)):
		return 0, errRange
	case err != nil:
		return 0, errors.New("is no size")
	}
	return n << shift, nil
}

// formatSize writes n with the largest unit that leaves it whole.
func formatSize(n int64) string {
	for _, unit := range []struct {
		suffix string
		shift  int
	}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}} {
		if n != 0 && n%(1<<unit.shift) == 0 {
			return strconv.FormatInt(n>>unit.shift, 10) + unit.suffix
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

func parseSwitch(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return false, errors.New("is neither true nor false")
}
