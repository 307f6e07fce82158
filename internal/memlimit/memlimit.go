// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package memlimit

import (
	"fmt"
	"math"
	"os"
	"runtime/debug"
)

// atStart is GOMEMLIMIT as set in the environment. Later, an extension may have changed the runtime's limit, which then
// follows from the limits here and is not an independent one.
var atStart = debug.SetMemoryLimit(-1)

// programMemory is what a process takes before it has any data: its code as far as it is resident, the runtime, and what
// components make when they start.
const programMemory = 24 << 20

// mostGarbage is the most that is left to memory which was freed but not yet collected: a third of what the program
// leaves, since a heap grows by half between two collections. A collector with this much room keeps up on few cores, and
// components of larger processes never use all of their shares at once.
const mostGarbage = 32 << 20

// Available returns how much memory data may take, 0 if that is not known: what the process may use, less what it takes
// without any data, and less garbage. In a small container these are most of it: shares of the whole limit would not fit.
func Available() int64 {
	limits, _ := Read(os.DirFS("/")) // an unreadable limit counts as none
	return forData(limits.available(atStart))
}

func forData(memory int64) int64 {
	left := max(memory-programMemory, memory/2)
	return left - min(left/3, mostGarbage)
}

// Cgroup returns the lower of a cgroup's limits, 0 if there is none.
func (l Limits) Cgroup() int64 { return tighter(l.Max, l.High) }

func (l Limits) available(goLimit int64) int64 {
	if goLimit <= 0 || goLimit == math.MaxInt64 {
		goLimit = 0
	}
	return tighter(l.Cgroup(), tighter(goLimit, l.Host))
}

// A Share is a default limit: a part of the memory, within bounds.
type Share struct {
	// Part is the share's divisor: 4 is a quarter of the memory.
	Part int64
	// Least and Most are its bounds in bytes. Most also applies if the memory is not known.
	Least, Most int64
}

// Of returns the share of an amount of memory.
func (s Share) Of(memory int64) int64 {
	if memory <= 0 {
		return s.Most
	}
	return min(max(memory/s.Part, s.Least), s.Most)
}

// Why explains the share of an amount of memory, "" if it is Most.
func (s Share) Why(memory int64) string {
	switch n := s.Of(memory); n {
	case s.Most:
		return ""
	case s.Least:
		return fmt.Sprintf("the least there is, with %s of memory", Size(memory))
	default:
		return fmt.Sprintf("%s of the memory there is (%s)", fraction(s.Part), Size(memory))
	}
}

func fraction(part int64) string {
	switch part {
	case 2:
		return "half"
	case 4:
		return "a quarter"
	case 8:
		return "an eighth"
	default:
		return fmt.Sprintf("a %dth", part)
	}
}

// Size formats a number of bytes for people: 512MiB, or in bytes if it is no whole number of KiB.
func Size(n int64) string {
	switch {
	case n >= 10<<30 || n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%dGiB", n>>30)
	case n >= 10<<20 || n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}
