package base

import "strings"

// Words are the parts of a text.
type Words []string

// AddIf appends a part if the condition holds.
func (w *Words) AddIf(condition bool, text string) {
	if condition {
		*w = append(*w, text)
	}
}

// Add appends a part unless it is empty.
func (w *Words) Add(text string) { w.AddIf(text != "", text) }

// Join returns the parts with a separator.
func (w Words) Join(separator string) string { return strings.Join(w, separator) }
