/** Times in seconds and values for a chart, oldest first; a null interrupts the line. */
export type ChartData = {
  readonly times: number[]
  readonly values: (number | null)[]
  readonly fromS: number
  readonly untilS: number
}
