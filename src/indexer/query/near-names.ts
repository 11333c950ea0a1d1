import { editDistance } from '../../core/did-you-mean.ts'
import { foldName } from './sql-tokens.ts'

/** Longer names are not compared as a whole: the work grows with the product of the lengths. */
const COMPARED_LENGTH_MAX = 40

/** Up to `count` names of which few letters differ, the nearest first. */
export function nearNames(name: string, among: Iterable<string>, count: number): readonly string[] {
  const folded = foldName(name).slice(0, COMPARED_LENGTH_MAX)
  const limit = Math.max(2, Math.floor(folded.length / 3))
  return [...new Set(among)]
    .map((each) => ({ each, score: editDistance(folded, foldName(each).slice(0, COMPARED_LENGTH_MAX)) }))
    .filter(({ score }) => score <= limit)
    .sort((a, b) => a.score - b.score || (a.each < b.each ? -1 : 1))
    .slice(0, count)
    .map(({ each }) => each)
}
