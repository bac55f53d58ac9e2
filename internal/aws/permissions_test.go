package aws

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// clients maps the SDK's package names to clients. Reading instance metadata needs no permissions.
var clients = map[string]reflect.Type{
	"autoscaling": reflect.TypeFor[*autoscaling.Client](), "cloudwatch": reflect.TypeFor[*cloudwatch.Client](),
	"dynamodb": reflect.TypeFor[*dynamodb.Client](), "lambda": reflect.TypeFor[*lambda.Client](),
	"ecs": reflect.TypeFor[*ecs.Client](), "applicationautoscaling": reflect.TypeFor[*applicationautoscaling.Client](),
	"s3": reflect.TypeFor[*s3.Client](), "sqs": reflect.TypeFor[*sqs.Client](),
}

var iamNames = map[string]string{"applicationautoscaling": "application-autoscaling"}

func calls(t *testing.T) (found []string) {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range files {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") ||
			entry.Name() == "permissions.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		var services []string
		for _, spec := range file.Imports {
			name, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), "github.com/aws/aws-sdk-go-v2/service/")
			switch {
			case !ok || strings.Contains(name, "/"):
			case clients[name] == nil:
				t.Errorf("%s imports %s: enter its client in this test", entry.Name(), spec.Path.Value)
			default:
				services = append(services, name)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			name := ""
			switch n := n.(type) {
			case *ast.SelectorExpr:
				of := n.X
				if got, ok := of.(*ast.CallExpr); ok {
					if get, ok := got.Fun.(*ast.SelectorExpr); ok && get.Sel.Name == "get" {
						of = get.X
					}
				}
				if inner, ok := of.(*ast.SelectorExpr); ok && inner.Sel.Name == "api" {
					name = n.Sel.Name
				}
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					name = strings.Trim(n.Value, `"`)
				}
			}
			for _, service := range services {
				if _, known := clients[service].MethodByName(name); known && name != "Options" {
					found = append(found, cmp.Or(iamNames[service], service)+":"+name)
				}
			}
			return true
		})
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestEveryCallHasAPermission(t *testing.T) {
	var listed []string
	for _, row := range permissions {
		service, names, _ := strings.Cut(row, ":")
		for name := range strings.FieldsSeq(names) {
			listed = append(listed, service+":"+name)
		}
	}
	made := calls(t)
	for _, call := range made {
		if !slices.Contains(listed, call) {
			t.Errorf("%s is called, and no feature in permissions has it", call)
		}
	}
	for _, call := range listed {
		if !slices.Contains(made, call) {
			t.Errorf("%s is in permissions, and nothing calls it", call)
		}
	}
	if len(made) < 30 || !slices.Contains(made, "sqs:ReceiveMessage") || !slices.Contains(made, "dynamodb:Scan") {
		t.Errorf("found only the calls %v", made)
	}
	for call := range callActions {
		if !slices.Contains(made, call) {
			t.Errorf("%s is in callActions, and nothing calls it", call)
		}
	}
}

func TestActions(t *testing.T) {
	for feature, want := range map[Feature]string{
		Receive: "sqs:ChangeMessageVisibility sqs:DeleteMessage sqs:GetQueueAttributes sqs:GetQueueUrl sqs:ReceiveMessage",
		KeepRegistry: "dynamodb:BatchGetItem dynamodb:ConditionCheckItem dynamodb:DescribeTable " +
			"dynamodb:DescribeTimeToLive dynamodb:GetItem dynamodb:UpdateItem",
		CreateRegistry:  "dynamodb:CreateTable dynamodb:TagResource dynamodb:UpdateTimeToLive",
		InvokeFunctions: "lambda:GetFunctionConfiguration lambda:InvokeFunction",
	} {
		if got := strings.Join(feature.Actions(), " "); got != want {
			t.Errorf("%s needs %s, want %s", feature, got, want)
		}
	}
}
