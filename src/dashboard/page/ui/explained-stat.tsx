import type { ComponentChildren } from 'preact'
import { Stat } from '../../../ui/stat.tsx'
import { EXPLANATIONS, type ExplanationId } from '../../model/explanations.ts'
import { Explain } from './explain.tsx'

type ExplainedStatProps = {
  id: ExplanationId
  label: string
  value: string
  unit?: string
  tone?: string
  width?: number
  note?: ComponentChildren
}

/** A number with its name, its unit and its explanation. */
export function ExplainedStat(props: ExplainedStatProps) {
  return <Stat {...props} title={EXPLANATIONS[props.id].short} mark={<Explain id={props.id} />} />
}
