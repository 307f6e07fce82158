// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

type configText struct {
	YAML string `json:"yaml"`
}

func (s *Server) config(*http.Request) (any, *fault) {
	text, _, _ := s.view.Config()
	return configText{YAML: text}, nil
}

type runtimeInfo struct {
	Start               time.Time `json:"startTime"`
	WorkingDirectory    string    `json:"CWD"`
	Hostname            string    `json:"hostname"`
	Now                 time.Time `json:"serverTime"`
	ReloadConfigSuccess bool      `json:"reloadConfigSuccess"`
	LastConfigTime      time.Time `json:"lastConfigTime"`
	CorruptionCount     int64     `json:"corruptionCount"`
	Goroutines          int       `json:"goroutineCount"`
	GOMAXPROCS          int       `json:"GOMAXPROCS"`
	GOMEMLIMIT          int64     `json:"GOMEMLIMIT"`
	GOGC                string    `json:"GOGC"`
	GODEBUG             string    `json:"GODEBUG"`
	StorageRetention    string    `json:"storageRetention"`
}

func (s *Server) runtimeInfo(*http.Request) (any, *fault) {
	_, since, rejected := s.view.Config()
	return runtimeInfo{
		Start: s.started, WorkingDirectory: s.wd, Hostname: s.host, Now: time.Now(),
		ReloadConfigSuccess: !rejected,
		LastConfigTime:      since,
		Goroutines:          runtime.NumGoroutine(),
		GOMAXPROCS:          runtime.GOMAXPROCS(0),
		GOMEMLIMIT:          debug.SetMemoryLimit(-1),
		GOGC:                os.Getenv("GOGC"),
		GODEBUG:             os.Getenv("GODEBUG"),
	}, nil
}

type buildInfo struct {
	Version   string `json:"version"`
	Revision  string `json:"revision"`
	Branch    string `json:"branch"`
	BuildUser string `json:"buildUser"`
	BuildDate string `json:"buildDate"`
	GoVersion string `json:"goVersion"`
}

func (s *Server) buildInfo(*http.Request) (any, *fault) {
	out := buildInfo{Version: s.build.Version, GoVersion: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			switch setting.Key {
			case "vcs.revision":
				out.Revision = setting.Value
			case "vcs.time":
				out.BuildDate = setting.Value
			default:
			}
		}
	}
	return out, nil
}
