package sqsapi

import (
	"cmp"
	"encoding/base64"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"tendril/internal/sqsapi/sqswire"
	"tendril/queue"
)

const (
	// maxMessage limits a message or batch, in bytes.
	maxMessage = 1 << 20
	// MaxBody is the maximum request body in bytes. It allows six bytes of JSON (\u003c) for each byte of the largest
	// batch, plus names, handles and URLs.
	MaxBody = 6*maxMessage + 256<<10
	// A valid request has at most six levels.
	maxDepth = 16
	// Without this limit, a small body could require a hundred times its size in memory.
	maxValues = 10_000
)

// decodeJSON decodes a request body, which may be empty. It accepts the JSON of old SDKs: duplicate parameters (the
// last wins), names in any case, and base64 with line breaks. Errors are of type [*queue.Error]; they may quote names
// and numbers, but no strings.
func (p parameters) decodeJSON(body []byte, request any) error {
	r := sqswire.NewReader(string(body), sqswire.Limits{Depth: maxDepth, Values: maxValues})
	if r.AtEnd() {
		return nil
	}
	p.readJSON(&r, reflect.ValueOf(request).Elem())
	if err := r.Finish(); err != nil {
		return jsonRefusal(err, body)
	}
	return nil
}

func (p parameters) readJSON(r *sqswire.Reader, to reflect.Value) {
	r.Object(func(name string) {
		if f := p.byJSONName(name); f != nil {
			f.readJSON(r, to.FieldByIndex(f.index))
		} else {
			r.Skip()
		}
	})
}

func (p parameters) byJSONName(name string) *parameter {
	if f := p[name]; f != nil && f.json == name {
		return f
	}
	for _, f := range p {
		if strings.EqualFold(f.json, name) {
			return f
		}
	}
	return nil
}

func (f *parameter) readJSON(r *sqswire.Reader, to reflect.Value) {
	if r.Null() {
		to.SetZero()
		return
	}

	switch to.Kind() {
	case reflect.String:
		if f.transient {
			to.SetString(r.Text())
		} else {
			to.SetString(r.OwnText())
		}
	case reflect.Bool:
		to.SetBool(r.Bool())
	case reflect.Int, reflect.Int64:
		to.SetInt(r.Integer(to.Type().Bits()))
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		f.readJSON(r, to.Elem())
	case reflect.Struct:
		f.of.readJSON(r, to)
	case reflect.Map:
		to.Set(reflect.MakeMap(to.Type()))
		r.Object(func(name string) {
			value := reflect.New(to.Type().Elem()).Elem()
			f.readJSON(r, value)
			to.SetMapIndex(reflect.ValueOf(strings.Clone(name)), value)
		})
	case reflect.Slice:
		f.readJSONList(r, to)
	}
}

func (f *parameter) readJSONList(r *sqswire.Reader, to reflect.Value) {
	switch list := to.Addr().Interface().(type) {
	case *[]byte:
		if r.Peek() != '"' {
			r.Mismatch("list or base64 string")
			return
		}
		data, err := base64.StdEncoding.DecodeString(r.Text())
		if err != nil {
			r.Reject("base64")
		}
		*list = data
	case *attributeList:
		*list = make(attributeList, 0, 2)
		r.Object(func(name string) {
			*list = append(*list, messageAttribute{name: name})
			f.of.readJSON(r, reflect.ValueOf(&(*list)[len(*list)-1]).Elem())
		})
		list.sort()
	default:
		to.Set(reflect.MakeSlice(to.Type(), 0, queue.MaxBatch))
		r.List(func() {
			if to.Len() == to.Cap() {
				to.Grow(to.Len())
			}
			to.SetLen(to.Len() + 1)
			f.readJSON(r, to.Index(to.Len()-1))
		})
	}
}

func jsonRefusal(err *sqswire.Error, body []byte) *queue.Error {
	switch err.Problem {
	case sqswire.TooDeep:
		return malformed("it nests more than " + strconv.Itoa(maxDepth) + " levels deep")
	case sqswire.TooManyValues:
		return malformed("it holds more than " + strconv.Itoa(maxValues) + " values")
	case sqswire.WrongKind:
		name := cmp.Or(err.Path, "the whole")
		if err.Got == "" {
			return malformed(name + " must be " + err.Want)
		}
		return malformed(name + " must be of type " + err.Want + ", not " + err.Got)
	}

	switch {
	case !utf8.Valid(body):
		return malformed("it is not valid UTF-8")
	case err.Problem == sqswire.HalfPair:
		return queue.Errorf(queue.CodeInvalidMessageContents,
			"Invalid character '#x%s' was found in the request: it is half of a surrogate pair.", strings.ToUpper(err.Got))
	}
	return malformed("it is not valid JSON from byte " + strconv.Itoa(min(err.At+1, len(body))) + " on")
}

// notBase64 follows a parameter's name in errors of the Query protocol.
const notBase64 = " must be base64"

func malformed(why string) *queue.Error {
	return queue.Errorf(codeSerialization, "Reading the request body failed: %s.", why)
}
