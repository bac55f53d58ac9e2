package instances

import (
	"encoding/json"
	"reflect"
	"strings"
)

// unknownFields is a JSON object of fields that later versions added to a value, or "". The fields move with the value,
// for example from Next to Current.
type unknownFields string

func decodeKeeping(text []byte, to any) (unknownFields, error) {
	if err := json.Unmarshal(text, to); err != nil {
		return "", err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return "", err
	}
	known := reflect.TypeOf(to).Elem()
	for i := range known.NumField() {
		name, _, _ := strings.Cut(known.Field(i).Tag.Get("json"), ",")
		delete(fields, name)
	}
	if len(fields) == 0 {
		return "", nil
	}
	kept, err := json.Marshal(fields)
	return unknownFields(kept), err
}

func encodeKeeping(from any, unknown unknownFields) ([]byte, error) {
	text, err := json.Marshal(from)
	if err != nil || unknown == "" {
		return text, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(unknown), &fields); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}
