// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mapping is one mapping of an executable as /proc/self/smaps shows it.
type mapping struct {
	start, end uintptr
	resident   int64
	untouched  bool // no page of it is the process's own
}

// releaseBinaryPages unmaps the pages of the executable's file that hold
// nothing but the file. A page used again is mapped back from the page cache, so
// code that runs meanwhile, this function's included, is only delayed. It
// returns how much was resident.
func releaseBinaryPages() (int64, error) {
	mappings, err := mappingsOfBinary()
	if err != nil {
		return 0, err
	}
	released := int64(0)
	var errs []error
	for _, m := range mappings {
		if !m.untouched {
			continue
		}
		_, _, errno := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED)
		if errno != 0 { // EINVAL when the mapping is locked in memory
			errs = append(errs, fmt.Errorf("cannot unmap %x-%x: %w", m.start, m.end, errno))
			continue
		}
		released += m.resident
	}
	return released, errors.Join(errs...)
}

// residentBinaryPages is how much of the executable's file is resident, 0 if that cannot be told. Other files that the process has
// mapped, such as the database of file_storage, are the kernel's to take back, and no concern of the heap.
func residentBinaryPages() (resident int64) {
	mappings, err := mappingsOfBinary()
	if err != nil {
		return 0
	}
	for _, m := range mappings {
		resident += m.resident
	}
	return resident
}

func mappingsOfBinary() ([]mapping, error) {
	executable, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("cannot name the executable: %w", err)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return nil, fmt.Errorf("cannot read the memory map: %w", err)
	}
	return readMappings(smaps, executable)
}

// readMappings returns the private, read-only mappings of the executable's file.
//
// A mapping is untouched when it has no anonymous page, neither in memory nor
// swapped out: relocations, breakpoints and uprobes are anonymous copies of the
// file's pages and would be lost. Private_Dirty is no criterion beside these two:
// of a file just unpacked it counts the pages not yet written to disk, which the
// page cache keeps.
func readMappings(smaps []byte, executable string) ([]mapping, error) {
	var mappings []mapping
	var current *mapping // nil within a mapping that is not ours
	for line := range strings.Lines(string(smaps)) {
		line = strings.TrimSuffix(line, "\n")
		key, value, _ := strings.Cut(line, " ")
		if !strings.HasSuffix(key, ":") {
			current = nil
			m, ok, err := parseHeader(key, value, executable)
			if err != nil {
				return nil, err
			}
			if ok {
				mappings = append(mappings, m)
				current = &mappings[len(mappings)-1]
			}
			continue
		}
		if current == nil {
			continue
		}
		switch key {
		case "Rss:", "Anonymous:", "Swap:":
		default:
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("cannot parse %q of the memory map: %w", line, err)
		}
		if key == "Rss:" {
			current.resident = kib << 10
		} else if kib > 0 {
			current.untouched = false
		}
	}
	return mappings, nil
}

// parseHeader reads "00400000-004ad000 r-xp 00000000 fe:00 9988417   /path" cut
// at its first space. The path may hold spaces.
func parseHeader(addresses, rest, executable string) (mapping, bool, error) {
	permissions, rest, _ := strings.Cut(rest, " ")
	if permissions != "r--p" && permissions != "r-xp" {
		return mapping{}, false, nil
	}
	_, path, _ := strings.Cut(rest, "/")
	if "/"+path != executable {
		return mapping{}, false, nil
	}
	low, high, _ := strings.Cut(addresses, "-")
	start, errStart := strconv.ParseUint(low, 16, 64)
	end, errEnd := strconv.ParseUint(high, 16, 64)
	if err := errors.Join(errStart, errEnd); err != nil || end <= start {
		return mapping{}, false, fmt.Errorf("cannot parse the addresses %q of the memory map", addresses)
	}
	return mapping{start: uintptr(start), end: uintptr(end), untouched: true}, true, nil
}
