package sqsapi

import (
	"bytes"
	"encoding/base64"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"tendril/queue"
)

const (
	// maxMessage is the size limit of one message and of a batch together.
	maxMessage = 1 << 20
	// MaxBody is the largest request body that is read. JSON may write any
	// byte of a message as six (\u003c), and base64 stretches a Binary value
	// by a third, so six times the largest batch plus room for names,
	// handles and URLs holds every legal request.
	MaxBody = 6*maxMessage + 256<<10
	// maxDepth bounds nesting. The deepest request needs six levels: request,
	// entries, entry, attributes, value, value list.
	maxDepth = 16
	// maxValues bounds the number of JSON values, since a few bytes of body
	// can ask for a hundred times as much memory. The largest legal batch has
	// less than a thousand.
	maxValues = 10_000
)

// decodeJSON fills request, a pointer to a struct, from body. An empty body
// is a request without parameters. Its errors are [*queue.Error] and never
// quote the body.
func decodeJSON(body []byte, request any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	if err := checkBounds(body); err != nil {
		return err
	}
	if decodePlain(body, request) {
		return nil
	}
	err := json.Unmarshal(body, request, decodeOptions)
	if err == nil {
		return nil
	}
	if syntax := (*jsontext.SyntacticError)(nil); errors.As(err, &syntax) {
		at := min(int(syntax.ByteOffset), len(body)-1)
		switch {
		case !utf8.Valid(body):
			return malformed("it is not valid UTF-8")
		case strings.Contains(syntax.Error(), "surrogate pair") && len(body) >= at+6: // \uXXXX
			return queue.Errorf(queue.CodeInvalidMessageContents,
				"Invalid character '#x%s' was found in the request: it is half of a surrogate pair.",
				bytes.ToUpper(body[at+2:at+6]))
		}
		return malformed("it is not valid JSON from byte " + strconv.Itoa(at+1) + " on")
	}
	var kind *json.SemanticError
	if !errors.As(err, &kind) || kind.GoType == nil || typeNames[kind.GoType.Kind()] == "" {
		return malformed("a value does not have the form that its parameter needs")
	}
	if errors.As(err, new(base64.CorruptInputError)) {
		return malformed(parameterName(kind.JSONPointer) + notBase64)
	}
	return malformed(parameterName(kind.JSONPointer) + " must be of type " + typeNames[kind.GoType.Kind()] +
		", not " + valueName(kind))
}

// decodeOptions read JSON as SDKs of every age write it: a parameter that is there twice counts
// as it stands last, and its name may be in any case, but without other underscores and hyphens. Base64 may be broken
// into lines, as in the Query protocol.
var decodeOptions = json.JoinOptions(jsontext.AllowDuplicateNames(true), json.MatchCaseInsensitiveNames(true),
	jsonv1.MatchCaseSensitiveDelimiter(true), jsonv1.ParseBytesWithLooseRFC4648(true))

// notBase64 follows the name of a parameter whose value is not base64, in both protocols.
const notBase64 = " must be base64"

// typeNames are the types of parameters in JSON's words.
var typeNames = map[reflect.Kind]string{
	reflect.Struct: "object", reflect.Map: "object", reflect.Slice: "list or base64 string", reflect.Int: "integer",
	reflect.Pointer: "integer", reflect.String: "string", reflect.Bool: "bool",
}

// parameterName is where a value stands in a request, such as Entries.0.Id.
func parameterName(at jsontext.Pointer) string {
	if at == "" {
		return "the whole"
	}
	return strings.ReplaceAll(string(at[1:]), "/", ".")
}

// valueName is what stands there instead of what is needed.
func valueName(e *json.SemanticError) string {
	switch e.JSONKind {
	case '[':
		return "array"
	case '{':
		return "object"
	case '0':
		if len(e.JSONValue) > 0 && len(e.JSONValue) < 32 {
			return "number " + string(e.JSONValue)
		}
	case 't', 'f':
		return "bool"
	}
	return e.JSONKind.String()
}

func malformed(why string) *queue.Error {
	return queue.Errorf(codeSerialization, "The request's body cannot be read: %s.", why)
}

// checkBounds refuses bodies that are too deep or have too many values. It does not
// validate: what it accepts may still not be JSON.
func checkBounds(body []byte) error {
	depth, values := 0, 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '{', '[':
			depth++
			values++
		case '}', ']':
			depth--
		case ',':
			values++
		case '"': // go on behind the next quote that has an even number of backslashes before it
			for escaped := true; escaped; {
				next := bytes.IndexByte(body[i+1:], '"')
				if next < 0 {
					return nil
				}
				i += next + 1
				escaped = (i-len(bytes.TrimRight(body[:i], `\`)))%2 == 1
			}
		}
		if depth > maxDepth {
			return malformed("it nests more than " + strconv.Itoa(maxDepth) + " levels deep")
		}
		if values > maxValues {
			return malformed("it holds more than " + strconv.Itoa(maxValues) + " values")
		}
	}
	return nil
}
