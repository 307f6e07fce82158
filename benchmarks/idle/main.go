// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Command idle measures what each choice built into the agent costs while nothing happens: it builds variants, lets
// each settle on a configuration that scrapes only itself, and reads their memory from /proc. Run it from the
// repository's root, on Linux: make bench-idle. SHORT=1 only tries it: it runs the shipped agent for seconds and writes
// nothing.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/report"
)

const (
	// settle is longer than the start, the first scrapes and the first release of the binary's pages.
	settle  = 25 * time.Second
	workDir = "bin/idle"

	results = "benchmarks/idle/idle.json"
	readme  = "distributions/godwit-agent/README.md"
	marker  = "idle"
)

// A variant is one way to build and start a collector.
type variant struct {
	Name string `json:"name"`
	// tags are the build tags of the agent's sources; empty means those of the manifest.
	tags string
	// overlay is merged into the agent's own configuration.
	overlay string

	RSS  int `json:"rss_kib"`
	Anon int `json:"rss_anon_kib"`
	File int `json:"rss_file_kib"`
	Size int `json:"binary_kib"`
}

const (
	noDiscovery = "grpcnotrace,testify_yaml_fail,remove_all_sd"
	kubernetes  = noDiscovery + ",enable_kubernetes_sd"
	shipped     = kubernetes + ",enable_dns_sd"
	everything  = "grpcnotrace,testify_yaml_fail"

	keepPages = "extensions: {runtimeprofile: {release_binary_pages: false}}\n"
)

// The kernel kills the agent when the thread that started it ends, so that must be the main thread.
func init() { runtime.LockOSThread() }

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	variants := []variant{
		{Name: "bare collector: OTLP in, nothing else"},
		{Name: "agent without any service discovery but file, http and static", tags: noDiscovery, overlay: keepPages},
		{Name: "+ Kubernetes discovery", tags: kubernetes, overlay: keepPages},
		{Name: "+ DNS discovery (as shipped)", tags: shipped, overlay: keepPages},
		{Name: "as shipped, pages of the binary released (default)", tags: shipped},
		{Name: "with all 27 of Prometheus' discoveries", tags: everything, overlay: keepPages},
		{Name: "with all of them, pages of the binary released", tags: everything},
	}
	wait, short := settle, os.Getenv("SHORT") != ""
	if short {
		wait, variants = settle/5, variants[3:4]
	}
	if err := os.MkdirAll(workDir, 0o755); err != nil {
		return err
	}
	for i := range variants {
		v := &variants[i]
		fmt.Printf("%d/%d %s: building\n", i+1, len(variants), v.Name)
		binary, err := build(ctx, v)
		if err != nil {
			return fmt.Errorf("cannot build %q: %w", v.Name, err)
		}
		fmt.Printf("%d/%d %s: settling for %s\n", i+1, len(variants), v.Name, wait)
		if err := measure(ctx, v, binary, wait); err != nil {
			return fmt.Errorf("cannot measure %q: %w", v.Name, err)
		}
	}
	fmt.Print(table(variants))
	if short {
		return nil
	}
	return write(variants)
}

func build(ctx context.Context, v *variant) (string, error) {
	if v.tags == "" {
		return workDir + "/bare-src/bare", command(ctx, ".", ".tools/builder", "--config", "benchmarks/idle/bare.yaml")
	}
	binary, err := filepath.Abs(filepath.Join(workDir, "agent-"+strconv.Itoa(len(v.tags))))
	if err != nil {
		return "", err
	}
	return binary, command(ctx, "distributions/godwit-agent", "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w", "-tags", v.tags, "-o", binary, ".")
}

func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func measure(ctx context.Context, v *variant, binary string, wait time.Duration) error {
	binary, err := v.install(binary)
	if err != nil {
		return err
	}

	args := []string{"--config", "distributions/godwit-agent/config.yaml"}
	if v.tags == "" {
		config := filepath.Join(workDir, "bare.yaml")
		if err := os.WriteFile(config, []byte(bareConfig), 0o600); err != nil {
			return err
		}
		args = []string{"--config", config}
	} else if v.overlay != "" {
		config := filepath.Join(workDir, "overlay.yaml")
		if err := os.WriteFile(config, []byte(v.overlay), 0o600); err != nil {
			return err
		}
		args = append(args, "--config", config)
	}

	log, err := os.Create(filepath.Join(workDir, "run.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "GODWIT_DATA="+filepath.Join(workDir, "data"))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	select {
	case err := <-ended:
		return fmt.Errorf("it ended, see %s: %w", log.Name(), errors.Join(err, ctx.Err()))
	case <-time.After(wait):
	}
	err = v.read(cmd.Process.Pid)
	return errors.Join(err, cmd.Process.Signal(syscall.SIGTERM), <-ended)
}

// install copies a binary in small chunks, as package managers and container engines do: new kernels map files by the
// folios in the page cache, which are as large as the chunks that were written, and those of the linker have 2 MB.
func (v *variant) install(binary string) (string, error) {
	text, err := os.ReadFile(binary)
	if err != nil {
		return "", err
	}
	v.Size = len(text) >> 10
	file, err := os.OpenFile(filepath.Join(workDir, "installed"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return "", err
	}
	for piece := range slices.Chunk(text, 32<<10) {
		if _, err := file.Write(piece); err != nil {
			return "", errors.Join(err, file.Close())
		}
	}
	return file.Name(), file.Close()
}

const bareConfig = `
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:4317"}}}}
exporters: {nop: {}}
service: {pipelines: {metrics: {receivers: [otlp], exporters: [nop]}}}
`

func (v *variant) read(pid int) error {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		kib, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
		switch name {
		case "VmRSS":
			v.RSS = kib
		case "RssAnon":
			v.Anon = kib
		case "RssFile":
			v.File = kib
		}
	}
	return nil
}

func write(variants []variant) error {
	text, err := json.MarshalIndent(variants, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(results, append(text, '\n'), 0o644),
		report.Splice(readme, marker, table(variants)),
	)
}

func table(variants []variant) string {
	var md strings.Builder
	md.WriteString("\n| what is built in | idle RSS MB | of it heap and stacks | of it pages of the binary | binary MB |\n|---|---:|---:|---:|---:|\n")
	for _, v := range variants {
		mb := func(kib int) string { return strconv.FormatFloat(float64(kib)/1024, 'f', 0, 64) }
		fmt.Fprintf(&md, "| %s | %s | %s | %s | %s |\n", v.Name, mb(v.RSS), mb(v.Anon), mb(v.File), mb(v.Size))
	}
	md.WriteString("\n")
	return md.String()
}
