// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"testing"
)

// roleVariable makes the test binary act as a process under test.
const roleVariable = "PROCESS_TEST_ROLE"

func play(role string) {
	switch role {
	case "exit":
		code, _ := strconv.Atoi(os.Args[1])
		os.Exit(code)
	case "parent": // has a child in its process group
		child := exec.Command(os.Args[0], os.Args[1:]...)
		child.Env = append(os.Environ(), roleVariable+"=serve")
		child.Stdout = os.Stdout
		if err := child.Run(); err != nil {
			os.Exit(1)
		}
	case "work":
		held := make([]byte, 64<<20)
		for i := range held {
			held[i] = byte(i)
		}
		fmt.Println("ready")
		for {
			for i := range held {
				held[i]++
			}
			runtime.KeepAlive(held)
		}
	case "serve":
		serve()
	case "abandon": // a test binary that dies without cleaning up
		p := Start(&recorder{}, Settings{
			Path: os.Args[0], Args: os.Args[1:], Env: []string{roleVariable + "=serve"}, Dir: os.TempDir(),
		})
		p.WaitLog(timeout, "ready")
		fmt.Println("abandoned", p.PID())
		panic("on purpose")
	}
}

func serve() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		_ = http.ListenAndServe(os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "hello")
		}))
	}()
	dir, _ := os.Getwd()
	fmt.Fprintln(os.Stderr, "to stderr")
	fmt.Printf("ready in %s\n", dir)
	<-signals
	fmt.Print("drained")
	os.Exit(7)
}

// recorder stands in for a test that is expected to fail.
type recorder struct {
	testing.TB

	failure string
}

func (r *recorder) Helper() {}

// Cleanup does nothing: its users clean up in other ways.
func (r *recorder) Cleanup(func()) {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// run calls f, which may fail, without ending the caller.
func (r *recorder) run(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}
