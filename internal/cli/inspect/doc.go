// Package inspect reports the state and history of environments.
//
// ps, status, health, top, describe, doctor, events, logs, scale and instances query the running environment. If none
// is running, describe and doctor examine the environment that 'tendril up' would start, and events and logs read the
// files of the last one.
package inspect
