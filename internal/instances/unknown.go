package instances

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
)

// unknownFields is a JSON object of fields that later versions added to a value, or "". The fields move with the value,
// for example from Next to Current.
type unknownFields string

// decode decodes text, and keeps the fields that the destination's type lacks.
func (u *unknownFields) decode(text []byte, to any) error {
	*u = ""
	if err := json.Unmarshal(text, to); err != nil {
		return err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}

	known := reflect.TypeOf(to).Elem()
	for i := range known.NumField() {
		name, _, _ := strings.Cut(known.Field(i).Tag.Get("json"), ",")
		delete(fields, name)
	}
	if len(fields) == 0 {
		return nil
	}
	kept, err := json.Marshal(fields)
	*u = unknownFields(kept)
	return err
}

func (u unknownFields) encode(from any) ([]byte, error) {
	text, err := json.Marshal(from)
	if err != nil || u == "" {
		return text, err
	}
	fields := map[string]json.RawMessage{}
	if err := errors.Join(json.Unmarshal([]byte(u), &fields), json.Unmarshal(text, &fields)); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}
