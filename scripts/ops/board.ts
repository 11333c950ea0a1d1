/** A compact description of a Grafana dashboard; `grafana.ts` generates the JSON. */
export type Board = {
  readonly uid: string
  readonly title: string
  /** A metric that every process of the board has: the choices of the process selector. */
  readonly processes: string
  readonly rows: readonly { readonly title: string; readonly panels: readonly Panel[] }[]
}

export type Panel = {
  readonly title: string
  /** Description of the panel. */
  readonly how: string
  readonly unit: Unit
  readonly kind?: 'lines' | 'stat'
  readonly queries: readonly Query[]
}

/** Unit ids of Grafana. */
export type Unit = 'short' | 's' | 'bytes' | 'Bps' | 'reqps' | 'percentunit' | 'dateTimeFromNow' | 'none'

export type Query = { readonly expr: string; readonly legend: string }

/** The scrape label that the dashboards use as a variable. */
const CHOSEN = 'instance=~"$instance"'

const selector = (metric: string, labels = ''): string => `${metric}{${labels === '' ? '' : `${labels},`}${CHOSEN}}`
const grouping = (by: string): string => (by === '' ? '' : ` by (${by})`)

/** Grafana's rate interval: at least four scrapes. */
const RATE_SPAN = '$__rate_interval'

/** Rate of a counter, summed by labels. */
export function rate(metric: string, by = '', labels = ''): Query {
  return {
    expr: `sum${grouping(by)} (rate(${selector(metric, labels)}[${RATE_SPAN}]))`,
    legend: by === '' ? nameOf(metric) : legendOf(by),
  }
}

/** A gauge, summed by labels. */
export function gauge(metric: string, by = '', labels = ''): Query {
  return {
    expr: `sum${grouping(by)} (${selector(metric, labels)})`,
    legend: by === '' ? nameOf(metric) : legendOf(by),
  }
}

/** Maximum of a gauge. */
export function worst(metric: string, by = '', labels = ''): Query {
  return {
    expr: `max${grouping(by)} (${selector(metric, labels)})`,
    legend: by === '' ? nameOf(metric) : legendOf(by),
  }
}

/** Minimum of a gauge, such as one that is 1 while all is well. */
export function least(metric: string, by = ''): Query {
  return {
    expr: `min${grouping(by)} (${selector(metric)})`,
    legend: by === '' ? nameOf(metric) : legendOf(by),
  }
}

/** Increase of a counter from one point of the graph to the next: events that are rare show as single peaks. */
export function counted(metric: string, by = '', labels = ''): Query {
  return {
    expr: `sum${grouping(by)} (increase(${selector(metric, labels)}[${RATE_SPAN}]))`,
    legend: by === '' ? nameOf(metric) : legendOf(by),
  }
}

/** Median and 99th percentile of a histogram. */
export function quantiles(metric: string, by = ''): Query[] {
  const labels = by === '' ? 'le' : `le, ${by}`
  return [0.5, 0.99].map((quantile) => ({
    expr: `histogram_quantile(${quantile}, sum by (${labels}) (rate(${selector(`${metric}_bucket`)}[${RATE_SPAN}])))`,
    legend: `p${quantile * 100}${by === '' ? '' : ` ${legendOf(by)}`}`,
  }))
}

function legendOf(by: string): string {
  return by
    .split(', ')
    .map((label) => `{{${label}}}`)
    .join(' ')
}

/** The legend of `sluice_shreds_received_total` is `received`. */
function nameOf(metric: string): string {
  return metric
    .replace(/^sluice_[a-z]+_/, '')
    .replace(/_total$/, '')
    .replaceAll('_', ' ')
}
