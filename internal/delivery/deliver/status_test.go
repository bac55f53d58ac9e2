package deliver

import (
	"strconv"
	"strings"
	"testing"
)

func codesOf(s StatusSet) string {
	var list []string
	for code := minStatus; code <= maxStatus; code++ {
		if !s.Has(code) {
			continue
		}
		first := code
		for s.Has(code + 1) {
			code++
		}
		switch first {
		case code:
			list = append(list, strconv.Itoa(code))
		default:
			list = append(list, strconv.Itoa(first)+"-"+strconv.Itoa(code))
		}
	}
	return strings.Join(list, ",")
}

func TestParseStatusSet(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ list, canonical string }{
		{"200", "200"},
		{"200,202-204,2xx", "200-299"},
		{" 204 , 200 ", "200,204"},
		{"202 - 204", "202-204"},
		{"2XX,404", "200-299,404"},
		{"599,200-201", "200-201,599"},
		{"200,200", "200"},
		{"204-204", "204"},
		{"200-599", "200-599"},
	} {
		s, err := ParseStatusSet(test.list)
		if err != nil || codesOf(s) != test.canonical {
			t.Errorf("ParseStatusSet(%q) = %v, %v; want %s", test.list, s, err, test.canonical)
		}
	}
}

func TestParseStatusSetRefuses(t *testing.T) {
	t.Parallel()
	for _, list := range []string{"", ",", "200,", "ok", "100", "1xx", "6xx", "0xx", "600", "20", "0200", "+20",
		"204-202", "200-", "-200", "2x", "20x", "200;201", "200-2xx"} {
		_, err := ParseStatusSet(list)
		if err == nil {
			t.Errorf("ParseStatusSet(%q) is accepted", list)
		} else if !strings.Contains(err.Error(), "200,202-204 or 2xx") {
			t.Errorf("ParseStatusSet(%q): %v does not say what to write", list, err)
		}
	}
}

func TestStatusSetHas(t *testing.T) {
	t.Parallel()
	s, err := ParseStatusSet("200,202-204,5xx")
	if err != nil {
		t.Fatal(err)
	}
	for code := -700; code < 1400; code++ {
		want := code == 200 || code >= 202 && code <= 204 || code >= 500 && code <= 599
		if s.Has(code) != want {
			t.Errorf("Has(%d) = %v", code, !want)
		}
	}
}

func FuzzParseStatusSet(f *testing.F) {
	for _, seed := range []string{"200", "200,202-204,2xx", "1xx", "200-", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		s, err := ParseStatusSet(list)
		if err != nil {
			return
		}
		if s == (StatusSet{}) {
			t.Errorf("%q gives an empty set", list)
		}
		if again, err := ParseStatusSet(codesOf(s)); err != nil || again != s {
			t.Errorf("%q has the codes %s, which read back as %v, %v", list, codesOf(s), again, err)
		}
	})
}
