import type { RawEventPart } from '../source/message.ts'
import { addKeysOf } from './event-matcher.ts'
import type { StreamGroup } from './group.ts'

type IndexedGroup = Pick<StreamGroup, 'eventKeys'>

/**
 * Finds the groups that may include one of some raw events, so that thousands of clients with filters of their own do not cost an evaluation of
 * each filter for each event.
 */
export class GroupIndex<Group extends IndexedGroup> {
  readonly #groups = new Map<string, Set<Group>>()

  add(group: Group): void {
    for (const key of group.eventKeys) {
      const groups = this.#groups.get(key)
      if (groups === undefined) this.#groups.set(key, new Set([group]))
      else groups.add(group)
    }
  }

  delete(group: Group): void {
    for (const key of group.eventKeys) {
      const groups = this.#groups.get(key)
      groups?.delete(group)
      if (groups?.size === 0) this.#groups.delete(key)
    }
  }

  /** Each group once. The events of one entry have most keys in common, so their keys are collected first. */
  find(events: readonly RawEventPart[]): ReadonlySet<Group> {
    const found = new Set<Group>()
    if (this.#groups.size === 0) return found
    const keys = new Set<string>()
    for (const event of events) addKeysOf(event, keys)
    for (const key of keys) for (const group of this.#groups.get(key) ?? []) found.add(group)
    return found
  }
}
