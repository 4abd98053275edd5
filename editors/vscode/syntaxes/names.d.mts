export declare const FUNCTIONS: string[]
export declare const OPERATORS: string[]
