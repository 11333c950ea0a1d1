import { setBounded } from '../../../core/bounded-map.ts'
import type { TimeSlices } from '../../../platform/process/time-slices.ts'
import type { Chain } from '../../chain/model.ts'
import { type Json, JsonText } from '../json.ts'

/** The slots of each leader in an epoch, counted from its first slot: of all leaders, or of one. */
export type LeaderSchedules = (request: ScheduleRequest, slices: TimeSlices) => Promise<Json>

type ScheduleRequest = { readonly chain: Chain; readonly epoch: number; readonly identity: string | undefined }

/** The slots of each leader as JSON. */
type Schedule = ReadonlyMap<string, JsonText>

/** A schedule of 432,000 slots is 3 MB of text. The present and the next epoch are asked for, at times the one before. */
const EPOCHS_MAX = 3
/** Slots between two looks at the clock. */
const STEP_SLOTS = 4096

/** Makes the schedule of an epoch once, in slices. It never changes. */
export function createLeaderSchedules(): LeaderSchedules {
  const known = new Map<number, Promise<Schedule>>()

  function scheduleOf(chain: Chain, epoch: number, slices: TimeSlices): Promise<Schedule> {
    const schedule = known.get(epoch) ?? readSchedule(chain, epoch, slices)
    known.delete(epoch)
    // The one that was not requested for longest makes room.
    setBounded(known, epoch, schedule, EPOCHS_MAX)
    return schedule
  }

  return async ({ chain, epoch, identity }, slices) => {
    const schedule = await scheduleOf(chain, epoch, slices)
    if (identity === undefined) return Object.fromEntries(schedule)
    const own = schedule.get(identity)
    return own === undefined ? {} : { [identity]: own }
  }
}

async function readSchedule(chain: Chain, epoch: number, slices: TimeSlices): Promise<Schedule> {
  const texts = new Map<string, string[]>()
  const firstSlot = epoch * chain.slotsPerEpoch
  for (let start = 0; start < chain.slotsPerEpoch; start += STEP_SLOTS) {
    if (slices.isSpent()) await slices.yield()
    const length = Math.min(STEP_SLOTS, chain.slotsPerEpoch - start)
    const indexes = Array.from({ length }, (_none, at) => start + at)
    for (const [leader, own] of Map.groupBy(indexes, (index) => chain.leaderOf(firstSlot + index))) {
      const text = texts.get(leader)
      if (text === undefined) texts.set(leader, [own.join()])
      else text.push(own.join())
    }
  }
  return new Map([...texts].map(([leader, text]) => [leader, new JsonText(`[${text.join()}]`)]))
}
