export { RequestFormPage as Component } from "@/features/request-form/components/request-form-page";
