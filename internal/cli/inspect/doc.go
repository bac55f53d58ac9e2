// Package inspect reports the state and history of environments.
//
// ps, status, health, top, describe, doctor, events, logs, scale and instances ask the running environment. If none
// runs, describe and doctor examine the one 'tendril up' would start, and events and logs read the files of the last
// one.
package inspect
