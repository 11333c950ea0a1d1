import { readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'

/** What memory is used for, as far as the kind of a mapping shows it. */
export const MEMORY_KINDS = ['heap', 'malloc', 'code', 'files', 'other'] as const
type MemoryKind = (typeof MEMORY_KINDS)[number]

/** One process: proportional set size (shared pages divided among the processes that use them), in bytes. */
export type ProcessMemory = {
  readonly pid: number
  /** The file that it runs, with its folder: `store/child.ts`. */
  readonly name: string
  readonly pssBytes: number
  readonly rssBytes: number
}

/** A process and all its descendants, as the kernel lists them; a process that has just ended is left out. */
export function treeMemory(pid: number): ProcessMemory[] {
  return processTree(pid).flatMap((member) => {
    try {
      const rollup = readFileSync(`/proc/${member}/smaps_rollup`, 'latin1')
      const pssBytes = kilobytesIn(rollup, 'Pss') * 1024
      return [{ pid: member, name: nameOf(member), pssBytes, rssBytes: kilobytesIn(rollup, 'Rss') * 1024 }]
    } catch {
      return []
    }
  })
}

function processTree(pid: number): number[] {
  try {
    const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1').split(' ').filter(Boolean).map(Number),
    )
    return [pid, ...children.flatMap(processTree)]
  } catch {
    return []
  }
}

/**
 * The same memory of one process by kind. `heap`: JavaScript objects; `malloc`: the C library's pools; `code`: generated machine code; `files`: the
 * program and its libraries; `other`: large buffers, shared memory between threads, stacks, the database's own allocator.
 */
export function memoryKinds(pid: number): Record<MemoryKind, number> {
  const bytes: Record<MemoryKind, number> = { heap: 0, malloc: 0, code: 0, files: 0, other: 0 }
  let kind: MemoryKind = 'other'
  for (const line of readFileSync(`/proc/${pid}/smaps`, 'latin1').split('\n')) {
    const mapping = MAPPING.exec(line)
    if (mapping !== null) kind = kindOf(mapping)
    else if (line.startsWith('Pss:')) bytes[kind] += kilobytesIn(line, 'Pss') * 1024
  }
  return bytes
}

/** Range, permissions and path of a mapping in /proc/PID/smaps. */
const MAPPING = /^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \d+ *(.*)$/
/** V8 takes memory for objects in pages of this size. */
const HEAP_PAGE = 256n * 1024n
/** glibc places the further pools of malloc at multiples of this. */
const ARENA = 64n * 1024n * 1024n

function kindOf([, from = '', to = '', permissions = '', path = '']: RegExpExecArray): MemoryKind {
  if (path === '[heap]') return 'malloc'
  if (path.startsWith('/')) return 'files'
  if (path !== '') return 'other'
  if (permissions.includes('x')) return 'code'
  const start = BigInt(`0x${from}`)
  const size = BigInt(`0x${to}`) - start
  if (start % ARENA === 0n && size > HEAP_PAGE) return 'malloc'
  return start % HEAP_PAGE === 0n && size % HEAP_PAGE === 0n ? 'heap' : 'other'
}

function kilobytesIn(text: string, field: string): number {
  return Number(new RegExp(`^${field}: +(\\d+) kB`, 'm').exec(text)?.[1] ?? 0)
}

function nameOf(pid: number): string {
  const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  const file = words.find((word) => /\.[jt]s$/.test(word)) ?? words[0] ?? ''
  return file.split('/').slice(-2).join('/') || basename(file)
}
