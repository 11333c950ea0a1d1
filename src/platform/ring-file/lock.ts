import { readFileSync, statSync } from 'node:fs'

/**
 * Whether a process holds the advisory lock that a ring's writer takes. The lock is looked up in /proc/locks and not tried: trying it
 * could keep a node that starts at that moment from taking it. Undefined where /proc is not available.
 */
export function isHeldByWriter(
  path: string,
  readLocks = () => readFileSync('/proc/locks', 'utf8'),
): boolean | undefined {
  try {
    // Only the inode is compared: overlay file systems show different devices here and there.
    const { ino } = statSync(path, { bigint: true })
    return [...readLocks().matchAll(FLOCK)].some(([, inode]) => BigInt(inode ?? 0) === ino)
  } catch {
    return undefined
  }
}

/** Lines such as `1: FLOCK  ADVISORY  WRITE 708 00:13:1042 0 EOF`, with major:minor:inode. Source: proc_locks(5). */
const FLOCK = /FLOCK\s+\S+\s+WRITE\s+\S+\s+[0-9a-f]+:[0-9a-f]+:(\d+)/g
