export { SelectNonprofitScreen as Component } from "@/features/request-form/components/select-nonprofit";
