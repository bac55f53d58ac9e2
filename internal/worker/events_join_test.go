package worker

import (
	"reflect"
	"testing"
)

func TestJoinedEventsCallEveryListener(t *testing.T) {
	t.Parallel()
	listeners := func(called *[]int, n int) *Events {
		var e Events
		v := reflect.ValueOf(&e).Elem()
		for i := range v.NumField() {
			v.Field(i).Set(reflect.MakeFunc(v.Field(i).Type(), func([]reflect.Value) []reflect.Value {
				*called = append(*called, n)
				return nil
			}))
		}
		return &e
	}
	var called []int
	joined := reflect.ValueOf(JoinEvents(listeners(&called, 1), &Events{}, listeners(&called, 2))).Elem()
	for i := range joined.NumField() {
		called = nil
		joined.Field(i).Call([]reflect.Value{reflect.Zero(joined.Field(i).Type().In(0))})
		if !reflect.DeepEqual(called, []int{1, 2}) {
			t.Errorf("%s calls the listeners %v", joined.Type().Field(i).Name, called)
		}
	}
	if none := JoinEvents(&Events{}, &Events{}); !reflect.DeepEqual(none, &Events{}) {
		t.Error("got listeners from arguments without any")
	}
}
